// Runs Kafka's shell tools one after the other in one JVM, so that its start of two seconds happens only once.
//
//     java -cp 'libs/*' Tools.java < commands
//
// A command is a line: a class and its arguments, separated by tabs. After the output of a tool follows a line with "== " and its
// exit code, which is 0 if the tool simply returns. Tools that call Kafka's Exit must not end the JVM. They get an exception instead.
// Some tools handle this exception as an error and call Exit again, so the first exit code counts.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class Tools {
  static class Left extends RuntimeException {
    Left() {
      super(null, null, false, false); // without a stack trace, because the tools would print it
    }
  }

  static Integer code;

  static void leave(int wanted) {
    if (code == null) code = wanted;
    throw new Left();
  }

  public static void main(String[] none) throws Exception {
    Exit.setExitProcedure((wanted, message) -> leave(wanted));
    Exit.setHaltProcedure((wanted, message) -> leave(wanted));
    System.setErr(System.out);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String[] words = line.split("\t");
      System.out.println("== " + run(words[0], Arrays.copyOfRange(words, 1, words.length)));
      System.out.flush();
    }
    System.exit(0); // ends threads that a tool has not stopped
  }

  static int run(String tool, String[] arguments) throws Exception {
    code = null;
    try {
      Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
    } catch (InvocationTargetException failed) {
      failed.getCause().printStackTrace(System.out);
      if (code == null) code = 1;
    }
    return code == null ? 0 : code;
  }
}
