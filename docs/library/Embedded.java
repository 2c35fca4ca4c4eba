import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.regex.Pattern;

public class Embedded {
    public static void main(String[] args) throws Exception {
        Process child = new ProcessBuilder("hmb", "broker", "--embedded")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = child.inputReader().readLine(); // Kafka clients connect to bootstrap_servers.
        var request = HttpRequest.newBuilder(URI.create("http://" + value(ready, "control") + "/faults"))
            .header("Authorization", "Bearer " + value(ready, "token"));
        var http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        String fault = "{\"api\": \"PRODUCE\", \"cut\": \"after\", \"times\": 1}";
        http.send(request.POST(HttpRequest.BodyPublishers.ofString(fault)).build(), BodyHandlers.ofString());
        System.out.println(http.send(request.GET().build(), BodyHandlers.ofString()).body());
        child.destroy();
    }

    static String value(String json, String name) {
        var found = Pattern.compile("\"" + name + "\": *\"([^\"]*)\"").matcher(json);
        found.find();
        return found.group(1);
    }
}
