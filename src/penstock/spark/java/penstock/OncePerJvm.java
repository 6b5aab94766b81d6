package penstock;

import java.io.Serializable;
import java.lang.ref.SoftReference;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.broadcast.Broadcast;

/**
 * Something large that each JVM makes once of a broadcast text, however many tasks and stages ask for it. Equal
 * keys mean equal things. What nobody uses any more goes when memory is short.
 */
public class OncePerJvm implements Serializable {
  private static final ConcurrentHashMap MADE = new ConcurrentHashMap();

  private final String key;
  private final Broadcast text;

  public OncePerJvm(String key, Broadcast text) {
    this.key = key;
    this.text = text;
  }

  /** The thing, made by `make` of the text's lines at the first call. */
  public Object get(Function make) throws Exception {
    Object found = kept();
    if (found != null) {
      return found;
    }
    synchronized (MADE) {
      found = kept();
      if (found == null) {
        found = make.call(((String) text.value()).split("\n"));
        MADE.put(key, new SoftReference(found));
      }
      return found;
    }
  }

  private Object kept() {
    SoftReference found = (SoftReference) MADE.get(key);
    return found == null ? null : found.get();
  }
}
