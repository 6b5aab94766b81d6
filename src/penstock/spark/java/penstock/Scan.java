package penstock;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapGroupsWithStateFunction;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.streaming.GroupState;
import org.apache.spark.sql.streaming.GroupStateTimeout;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Function1;

/**
 * A recurrence over the rows of each key: its step and its results are Spark's own expressions, its state is
 * one row in Spark's state store. The rows of a key are taken in the order of some of their columns.
 */
public class Scan implements FlatMapGroupsWithStateFunction {
  private static final int MARK = 8;

  private final StructType rows;
  private final StructType results;
  private final Projections start;
  private final Projections step;
  private final Projections emit;
  private final int[] order;
  private final long mark;
  private transient Function1 read;
  private transient Function1 show;

  private Scan(StructType rows, StructType results, Dataset start, Dataset step, Dataset emit, int[] order) {
    this.rows = rows;
    this.results = results;
    this.start = new Projections(start);
    this.step = new Projections(step);
    this.emit = new Projections(emit);
    this.order = order;
    this.mark = step.schema().simpleString().hashCode();
  }

  /** A frame without rows that the optimizer takes for one with: expressions are written against it. */
  public static Dataset template(SparkSession session, DataType schema) {
    return session.createDataFrame(new JavaSparkContext(session.sparkContext()).emptyRDD(), (StructType) schema);
  }

  /**
   * The results of `rows`. `start` gives the state before the first row, `step` the state after a row, and `emit`
   * whether the row leaves, whether the state is forgotten, and then the columns of the result.
   */
  public static Dataset over(Dataset rows, List by, List order, Dataset start, Dataset step, Dataset emit) {
    StructType given = rows.schema();
    Column[] keys = new Column[by.size()];
    StructType keyed = new StructType();
    for (int i = 0; i < keys.length; i++) {
      keys[i] = rows.col("`" + by.get(i) + "`");
      keyed = keyed.add(given.apply((String) by.get(i)));
    }
    int[] places = new int[order.size()];
    for (int i = 0; i < places.length; i++) {
      places[i] = given.fieldIndex((String) order.get(i));
    }
    StructType results = new StructType();
    for (int i = 2; i < emit.schema().length(); i++) {
      results = results.add(emit.schema().apply(i));
    }
    Scan scan = new Scan(given, results, start, step, emit, places);
    return rows.groupBy(keys).as(Encoders.row(keyed), Encoders.row(given)).flatMapGroupsWithState(
        scan, OutputMode.Append(), Encoders.BINARY(), Encoders.row(results), GroupStateTimeout.NoTimeout());
  }

  public Iterator call(Object key, Iterator values, GroupState kept) {
    if (read == null) {
      read = CatalystTypeConverters$.MODULE$.createToCatalystConverter(rows);
      show = CatalystTypeConverters$.MODULE$.createToScalaConverter(results);
    }
    UnsafeRow state = kept.exists() ? fromBytes((byte[]) kept.get()) : null;
    List shown = new ArrayList();
    Iterator ordered = ordered(values).iterator();
    while (ordered.hasNext()) {
      InternalRow row = (InternalRow) read.apply(ordered.next());
      if (state == null) {
        state = start.of(new GenericInternalRow(rows.length())).copy();
      }
      state = step.of(joined(row, state)).copy();
      UnsafeRow result = emit.of(joined(row, state));
      if (result.getBoolean(0)) {
        shown.add(show.apply(tail(result)));
      }
      if (result.getBoolean(1)) {
        state = null;
      }
    }
    if (state != null) {
      kept.update(toBytes(state));
    } else if (kept.exists()) {
      kept.remove();
    }
    return shown.iterator();
  }

  private List ordered(Iterator values) {
    List found = new ArrayList();
    while (values.hasNext()) {
      found.add(values.next());
    }
    if (order.length > 0 && found.size() > 1) {
      Collections.sort(found, new ByColumns(order));
    }
    return found;
  }

  /** The bytes of a state begin with a number of its schema: another recurrence must not read them. */
  private byte[] toBytes(UnsafeRow state) {
    byte[] row = state.getBytes();
    return ByteBuffer.allocate(row.length + MARK).putLong(mark).put(row).array();
  }

  private UnsafeRow fromBytes(byte[] bytes) {
    if (bytes.length < MARK || ByteBuffer.wrap(bytes).getLong() != mark) {
      throw new IllegalStateException(
          "the state of a scan must be read by the recurrence that kept it, but its columns or their types have"
              + " changed: give the operator another name, or remove the pipeline's state");
    }
    UnsafeRow row = new UnsafeRow(step.width());
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + MARK, bytes.length - MARK);
    return row;
  }

  private static InternalRow joined(InternalRow row, UnsafeRow state) {
    return new JoinedRow(row, new GenericInternalRow(new Object[] {state}));
  }

  private InternalRow tail(UnsafeRow result) {
    Object[] values = new Object[results.length()];
    for (int i = 0; i < values.length; i++) {
      values[i] = result.isNullAt(i + 2) ? null : result.get(i + 2, results.apply(i).dataType());
    }
    return new GenericInternalRow(values);
  }

  /** Rows by some of their columns, nulls first. */
  private static class ByColumns implements Comparator {
    private final int[] places;

    ByColumns(int[] places) {
      this.places = places;
    }

    public int compare(Object first, Object second) {
      for (int i = 0; i < places.length; i++) {
        Object one = ((Row) first).get(places[i]);
        Object other = ((Row) second).get(places[i]);
        int found = one == null || other == null
            ? (one == null ? 0 : 1) - (other == null ? 0 : 1) : ((Comparable) one).compareTo(other);
        if (found != 0) {
          return found;
        }
      }
      return 0;
    }
  }
}
