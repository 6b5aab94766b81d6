package penstock;

import java.util.Arrays;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF2;

/** The rows of a table of numbers from one place up to, but not including, another; "" is null. */
public class RowRange implements UDF2, Function {
  private final OncePerJvm table;
  private transient Row[] rows;

  public RowRange(OncePerJvm table) {
    this.table = table;
  }

  public Object call(Object first, Object end) throws Exception {
    if (rows == null) {
      rows = (Row[]) table.get(this);
    }
    if (first == null || end == null) {
      return null;
    }
    int from = (int) Math.max(0L, Math.min(((Long) first).longValue(), (long) rows.length));
    int to = (int) Math.max((long) from, Math.min(((Long) end).longValue(), (long) rows.length));
    return Arrays.copyOfRange(rows, from, to);
  }

  public Object call(Object lines) {
    String[] texts = (String[]) lines;
    Row[] made = new Row[texts.length];
    for (int i = 0; i < texts.length; i++) {
      String[] fields = texts[i].split(",", -1);
      Object[] values = new Object[fields.length];
      for (int j = 0; j < fields.length; j++) {
        values[j] = fields[j].isEmpty() ? null : Double.valueOf(fields[j]);
      }
      made[i] = RowFactory.create(values);
    }
    return made;
  }
}
