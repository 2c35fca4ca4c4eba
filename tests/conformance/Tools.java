// Runs Kafka's shell tools one after another in one JVM: a start of two seconds for all of them together.
//
//     java -cp 'libs/*' Tools.java < commands
//
// A command is a line: a class and its arguments, separated by tabs. After what it prints comes a line of its own, "== " and the
// exit code (0 where the tool just returns). Tools that leave by Kafka's Exit are held back, so that the next one has its turn.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class Tools {
  static class Left extends RuntimeException {
    final int code;

    Left(int code) {
      this.code = code;
    }
  }

  public static void main(String[] none) throws Exception {
    Exit.setExitProcedure((code, message) -> { throw new Left(code); });
    Exit.setHaltProcedure((code, message) -> { throw new Left(code); });
    System.setErr(System.out);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String[] words = line.split("\t");
      System.out.println("== " + run(words[0], Arrays.copyOfRange(words, 1, words.length)));
      System.out.flush();
    }
    System.exit(0); // whatever threads a tool has left behind
  }

  static int run(String tool, String[] arguments) throws Exception {
    try {
      Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
      return 0;
    } catch (InvocationTargetException failed) {
      if (failed.getCause() instanceof Left left) return left.code;
      failed.getCause().printStackTrace(System.out);
      return 1;
    }
  }
}
