package penstock;

import com.fasterxml.jackson.core.JsonFactory;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.UnaryExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.json.JSONOptions;
import org.apache.spark.sql.catalyst.json.JacksonParser;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.FailureSafeParser;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.AbstractPartialFunction;

/**
 * from_json that lets Spark's parser read the bytes of the text as they are, and that whole stages can hold.
 *
 * Spark decodes each text by a reader of its own, which begins with 8 kB of zeroed memory: for short texts that takes
 * longer than the parsing. Text that is not plain, or does not parse, is left to Spark's own from_json, so that results
 * are the same to the last bad record.
 */
public class JsonOfBytes extends UnaryExpression implements Serializable {
  /** By other options Spark reads what is not JSON, or reads it by other rules. */
  private static final Set SAME_BY_BYTES = new HashSet(Arrays.asList(new String[] {
    "mode", "columnnameofcorruptrecord", "timezone", "locale", "dateformat", "timestampformat", "timestampntzformat"
  }));

  private final JsonToStructs spark;
  private final String corrupt;
  private transient FailureSafeParser parser;

  private JsonOfBytes(JsonToStructs spark, String corrupt) {
    this.spark = spark;
    this.corrupt = corrupt;
  }

  /** The plan with this in the place of each from_json for which it gives the same rows. In the plan's session. */
  public static SparkPlan within(SparkPlan plan) {
    return (SparkPlan) plan.transformAllExpressions(new Replacing());
  }

  private static boolean canReplace(JsonToStructs spark) {
    boolean can = spark.dataType() instanceof StructType && spark.timeZoneId().isDefined();
    Iterator names = spark.options().keysIterator();
    while (can && names.hasNext()) {
      can = SAME_BY_BYTES.contains(((String) names.next()).toLowerCase(Locale.ROOT));
    }
    return can && isAccepted(options(spark, corruptColumn()), (StructType) spark.dataType());
  }

  /** Whether Spark would read by these options: what it refuses, it refuses at the first row. */
  private static boolean isAccepted(JSONOptions options, StructType schema) {
    String mode = options.parseMode().name();
    boolean accepted = mode.equals("PERMISSIVE") || mode.equals("FAILFAST");
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      boolean isCorrupt = fields[i].name().equals(options.columnNameOfCorruptRecord());
      accepted &= !isCorrupt || (fields[i].dataType() instanceof StringType && fields[i].nullable());
    }
    return accepted;
  }

  private static JSONOptions options(JsonToStructs spark, String corrupt) {
    return new JSONOptions(spark.options(), (String) spark.timeZoneId().get(), corrupt);
  }

  /** By the session that plans, as Spark's own does: tasks may not know its settings. */
  private static String corruptColumn() {
    return SQLConf.get().columnNameOfCorruptRecord();
  }

  public TreeNode child() {
    return spark.child();
  }

  public TreeNode withNewChildInternal(TreeNode child) {
    return new JsonOfBytes(spark.withNewChildInternal((Expression) child), corrupt);
  }

  public DataType dataType() {
    return spark.dataType();
  }

  public boolean nullable() {
    return true;
  }

  /** A parser keeps the row that it has made, so that every copy has its own. */
  public boolean stateful() {
    return true;
  }

  public boolean nullIntolerant() {
    return true;
  }

  public String prettyName() {
    return "from_json_bytes";
  }

  public Object nullSafeEval(Object text) {
    UTF8String json = (UTF8String) text;
    if (isPlain(json)) {
      try {
        Iterator rows = parser().parse(json);
        return rows.hasNext() ? rows.next() : null;
      } catch (NotRead problem) {
        return spark.nullSafeEval(json);
      }
    }
    return spark.nullSafeEval(json);
  }

  /** UTF-8 without a mark, as Jackson tells from its first bytes; not valid, Spark would put other characters. */
  private static boolean isPlain(UTF8String json) {
    return json.numBytes() > 3 && json.getByte(0) > 0 && json.getByte(1) > 0 && json.getByte(2) > 0
        && json.getByte(3) > 0 && (isAscii(json) || json.isValid());
  }

  /** By eight bytes at a time, where Spark looks at each. */
  private static boolean isAscii(UTF8String json) {
    Object base = json.getBaseObject();
    long place = json.getBaseOffset();
    long end = place + json.numBytes();
    long seen = 0L;
    for (; place + 8 <= end; place += 8) {
      seen |= Platform.getLong(base, place);
    }
    for (; place < end; place++) {
      seen |= Platform.getByte(base, place);
    }
    return (seen & 0x8080808080808080L) == 0L;
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode made) {
    String own = context.addReferenceObj("fromJson", this, JsonOfBytes.class.getName());
    return nullSafeCodeGen(context, made, new Code(own, made));
  }

  private FailureSafeParser parser() {
    if (parser == null) {
      JSONOptions options = options(spark, corrupt);
      StructType schema = (StructType) spark.dataType();
      String set = options.columnNameOfCorruptRecord();
      Seq filters = (Seq) Nil$.MODULE$;
      JacksonParser rows = new JacksonParser(without(schema, set), options, false, filters);
      parser = new FailureSafeParser(new Parse(rows), options.parseMode(), schema, set);
    }
    return parser;
  }

  private static StructType without(StructType schema, String name) {
    StructType found = new StructType();
    StructField[] fields = schema.fields();
    for (int i = 0; i < fields.length; i++) {
      found = fields[i].name().equals(name) ? found : found.add(fields[i]);
    }
    return found;
  }

  public Object productElement(int place) {
    return child();
  }

  public int productArity() {
    return 1;
  }

  public boolean canEqual(Object other) {
    return other instanceof JsonOfBytes;
  }

  public boolean equals(Object other) {
    return other instanceof JsonOfBytes && spark.equals(((JsonOfBytes) other).spark);
  }

  public int hashCode() {
    return spark.hashCode();
  }

  private static final class Replacing extends AbstractPartialFunction {
    public boolean isDefinedAt(Object expression) {
      return expression instanceof JsonToStructs && canReplace((JsonToStructs) expression);
    }

    public Object apply(Object expression) {
      return new JsonOfBytes((JsonToStructs) expression, corruptColumn());
    }

    public Object applyOrElse(Object expression, scala.Function1 otherwise) {
      return isDefinedAt(expression) ? apply(expression) : otherwise.apply(expression);
    }
  }

  /** Spark's own from_json is asked what to make of the text. */
  private static final class NotRead extends RuntimeException {
    static final NotRead ONE = new NotRead();

    private NotRead() {
      super("left to Spark", null, false, false);
    }
  }

  private static final class Parse extends AbstractFunction1 {
    private final JacksonParser rows;
    private final Bytes bytes = new Bytes();
    private final Itself itself = new Itself();

    Parse(JacksonParser rows) {
      this.rows = rows;
    }

    public Object apply(Object json) {
      try {
        return rows.parse(json, bytes, itself);
      } catch (Throwable problem) {
        if (problem instanceof Error) {
          throw (Error) problem;
        }
        throw NotRead.ONE;
      }
    }
  }

  private static final class Bytes extends AbstractFunction2 {
    public Object apply(Object factory, Object json) {
      ByteBuffer text = ((UTF8String) json).getByteBuffer();
      try {
        // As a stream: from bytes at hand Spark copies what should be a string and is not, with other spaces.
        return ((JsonFactory) factory).createParser(
            new ByteArrayInputStream(text.array(), text.arrayOffset() + text.position(), text.remaining()));
      } catch (IOException problem) {
        throw NotRead.ONE;
      }
    }
  }

  private static final class Itself extends AbstractFunction1 {
    public Object apply(Object json) {
      return json;
    }
  }

  private static final class Code extends AbstractFunction1 {
    private final String own;
    private final ExprCode made;

    Code(String own, ExprCode made) {
      this.own = own;
      this.made = made;
    }

    public Object apply(Object text) {
      String row = InternalRow.class.getName();
      return made.value() + " = (" + row + ") " + own + ".nullSafeEval(" + text + ");\n"
          + made.isNull() + " = " + made.value() + " == null;\n";
    }
  }
}
