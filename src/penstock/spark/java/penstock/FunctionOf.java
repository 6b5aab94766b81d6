package penstock;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;

/** A Java function of columns, as a column. The Python bridge would take Spark's udf for Scala functions instead. */
public class FunctionOf {
  public static Column columns(Object function, DataType returns, List given) {
    Column[] columns = new Column[given.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = (Column) given.get(i);
    }
    return function instanceof UDF1
        ? functions.udf((UDF1) function, returns).apply(columns)
        : functions.udf((UDF2) function, returns).apply(columns);
  }
}
