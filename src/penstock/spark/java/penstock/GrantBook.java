package penstock;

import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/** The grants of one input of one stage, by number. Books are found by name when Spark starts a query. */
public class GrantBook {
  private static final ConcurrentHashMap BOOKS = new ConcurrentHashMap();

  private final String name;
  private final TreeMap lines = new TreeMap();
  private long latest = 0;
  private long served = 0;

  private GrantBook(String name) {
    this.name = name;
  }

  public static GrantBook open(String name) {
    GrantBook book = new GrantBook(name);
    BOOKS.put(name, book);
    return book;
  }

  public static GrantBook named(String name) {
    GrantBook book = (GrantBook) BOOKS.get(name);
    if (book == null) {
      throw new IllegalStateException("no grants are kept under the name " + name
          + ": the stage was not opened by Penstock in this process");
    }
    return book;
  }

  public static void close(String name) {
    BOOKS.remove(name);
  }

  /** Adds grant `number`: one "size path" line a file. Numbers only grow. */
  public synchronized void add(long number, String files) {
    lines.put(Long.valueOf(number), files);
    latest = Math.max(latest, number);
  }

  /** Forgets the grants below `number`, whose batches are committed. */
  public synchronized void forgetBelow(long number) {
    lines.headMap(Long.valueOf(number)).clear();
  }

  public synchronized long latest() {
    return latest;
  }

  /** The files of the grants from `first` to `last`. */
  public GrantedFiles between(long first, long last) {
    GrantedFiles granted = new GrantedFiles(this);
    granted.grantLines(lines(first, last));
    return granted;
  }

  /** The same as lines. Without a batch's grants there would be silent loss, so a missing one is an error. */
  synchronized String lines(long first, long last) {
    StringBuilder all = new StringBuilder();
    for (long number = first; number <= last; number++) {
      String files = (String) lines.get(Long.valueOf(number));
      if (files == null) {
        throw new IllegalStateException("grant " + number + " of " + name
            + " is not known: the stage's grants and its checkpoint are not of one run");
      }
      if (!files.isEmpty()) {
        if (all.length() > 0) {
          all.append('\n');
        }
        all.append(files);
      }
    }
    served = Math.max(served, last);
    return all.toString();
  }

  /** The last grant that the batch now running reads, 0 if it reads none; asked once a batch. */
  public synchronized long takeServed() {
    long last = served;
    served = 0;
    return last;
  }
}
