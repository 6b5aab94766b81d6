package penstock;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;

/** A Java function of columns, as a column. The Python bridge would take Spark's udf for Scala functions instead. */
public class FunctionOf {
  public static Column columns(Object function, DataType returns, List given) {
    return made(function, returns).apply(array(given));
  }

  /**
   * The same for a function whose result depends on more than its arguments, shown under a name: Spark neither repeats
   * its call for a row nor moves it.
   */
  public static Column varying(Object function, String name, DataType returns, List given) {
    return made(function, returns).withName(name).asNondeterministic().apply(array(given));
  }

  private static UserDefinedFunction made(Object function, DataType returns) {
    return function instanceof UDF1
        ? functions.udf((UDF1) function, returns)
        : functions.udf((UDF2) function, returns);
  }

  private static Column[] array(List given) {
    Column[] columns = new Column[given.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = (Column) given.get(i);
    }
    return columns;
  }
}
