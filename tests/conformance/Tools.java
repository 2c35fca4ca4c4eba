// Runs Kafka's shell tools one after another in one JVM: a start of two seconds for all of them together.
//
//     java -cp 'libs/*' Tools.java < commands
//
// A command is a line: a class and its arguments, separated by tabs. After what it prints comes a line of its own, "== " and the
// exit code (0 where the tool just returns). Tools that leave by Kafka's Exit are held back, so that the next one has its turn;
// some then believe that they have failed, and leave again, so the first code counts.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class Tools {
  static class Left extends RuntimeException {
    Left() {
      super(null, null, false, false); // without a stack trace, which tools print
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
    System.exit(0); // whatever threads a tool has left behind
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
