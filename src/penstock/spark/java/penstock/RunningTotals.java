package penstock;

import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.ForeachWriter;
import org.apache.spark.sql.Row;

/**
 * A sink of running totals, for queries in real-time mode: by its first column, a number, the second as it came last,
 * and since when it stands. Spark copies the writer for each task; what came is kept by name in this JVM.
 */
public class RunningTotals extends ForeachWriter {
  private static final ConcurrentHashMap KEPT = new ConcurrentHashMap();

  private final String name;

  public RunningTotals(String name) {
    this.name = name;
    KEPT.put(name, new ConcurrentHashMap());
  }

  public boolean open(long partition, long epoch) {
    return KEPT.containsKey(name);
  }

  public void process(Object value) {
    Row row = (Row) value;
    ConcurrentHashMap totals = (ConcurrentHashMap) KEPT.get(name);
    if (totals == null || row.get(1) == null) {
      return;
    }
    double total = ((Number) row.get(1)).doubleValue();
    double[] known = (double[]) totals.get(row.get(0));
    if (known == null || known[0] != total) {
      totals.put(row.get(0), new double[] {total, System.currentTimeMillis() / 1000.0});
    }
  }

  public void close(Throwable error) {}

  /** A line for each key: the key, its total, and the epoch seconds since when it stands. */
  public static String told(String name) {
    StringBuilder lines = new StringBuilder();
    Iterator each = ((Map) KEPT.get(name)).entrySet().iterator();
    while (each.hasNext()) {
      Map.Entry entry = (Map.Entry) each.next();
      double[] known = (double[]) entry.getValue();
      lines.append(entry.getKey()).append(' ').append(known[0]).append(' ').append(known[1]).append('\n');
    }
    return lines.toString();
  }

  public static void forget(String name) {
    KEPT.remove(name);
  }
}
