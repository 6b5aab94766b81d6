package penstock;

import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where a ring of keys is found: an environment variable, a file, or the memory of this JVM. Only this name travels
 * with plans and tasks; every JVM reads the ring itself, and a file again after each `refresh`.
 */
public class KeyPlace implements Serializable {
  public static final String VARIABLE = "environment variable";
  public static final String FILE = "file";
  public static final String FUNCTION = "function";
  /** How long a file that was good and no longer is may stay so, as one that is being written. */
  private static final long GRACE_NANOS = 10000000000L;
  private static final ConcurrentHashMap HELD = new ConcurrentHashMap();

  private static final class Held {
    volatile KeyRing ring;
    volatile long readNanos;
    boolean failing;
    long failingNanos;
  }

  private final String kind;
  private final String name;
  private final long refreshNanos;
  private transient volatile Held held;

  public KeyPlace(String kind, String name, long refreshNanos) {
    this.kind = kind;
    this.name = name;
    this.refreshNanos = refreshNanos;
  }

  /** The ring of now. */
  KeyRing ring() {
    Held mine = held;
    if (mine == null) {
      mine = held(kind, name);
      held = mine;
    }
    return isFresh(mine) ? mine.ring : read(mine);
  }

  /** Why there is no ring, or null where there is one. */
  public String problem() {
    try {
      ring();
      return null;
    } catch (KeyProblem problem) {
      return problem.getMessage();
    }
  }

  /**
   * Keeps the ring that comes through a named pipe, as its length and its text; what is wrong with it, or null. The
   * Python bridge would write an argument into its log.
   */
  public static String take(String kind, String name, String pipe) throws Exception {
    DataInputStream in = new DataInputStream(new FileInputStream(pipe));
    byte[] text;
    try {
      text = new byte[in.readInt()];
      in.readFully(text);
    } finally {
      in.close();
    }
    try {
      held(kind, name).ring = KeyRing.parse(new String(text, StandardCharsets.UTF_8));
      return null;
    } catch (KeyProblem problem) {
      return told(kind, name, problem);
    }
  }

  private static Held held(String kind, String name) {
    HELD.putIfAbsent(kind + " " + name, new Held());
    return (Held) HELD.get(kind + " " + name);
  }

  private static String told(String kind, String name, KeyProblem problem) {
    String place = kind.equals(FUNCTION) ? "a function" : kind + " " + name;
    return "keys of " + place + ": " + problem.getMessage();
  }

  private boolean isFresh(Held mine) {
    return mine.ring != null && (!kind.equals(FILE) || System.nanoTime() - mine.readNanos < refreshNanos);
  }

  private KeyRing read(Held mine) {
    synchronized (mine) {
      if (isFresh(mine)) {
        return mine.ring;
      }
      try {
        mine.ring = KeyRing.parse(text());
        mine.failing = false;
      } catch (KeyProblem problem) {
        long now = System.nanoTime();
        if (mine.ring == null || mine.failing && now - mine.failingNanos > GRACE_NANOS) {
          throw new KeyProblem(told(kind, name, problem));
        }
        mine.failingNanos = mine.failing ? mine.failingNanos : now;
        mine.failing = true;
      }
      mine.readNanos = System.nanoTime();
      return mine.ring;
    }
  }

  private String text() {
    if (kind.equals(FILE)) {
      return KeyFile.read(name);
    }
    String text = kind.equals(VARIABLE) ? System.getenv(name) : null;
    if (text == null) {
      throw new KeyProblem(kind.equals(VARIABLE)
          ? "must be set in every process that needs it, but is not"
          : "must be in this JVM's memory, but is not: a function gives keys to the driver alone");
    }
    return text;
  }
}
