package penstock;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;

/** readStream.format("penstock.GrantSourceProvider").schema(...).option("book", name). */
public class GrantSourceProvider implements StreamSourceProvider {
  public Tuple2 sourceSchema(SQLContext context, Option schema, String provider, Map options) {
    return new Tuple2("penstock", schema.get());
  }

  public Source createSource(
      SQLContext context, String metadataPath, Option schema, String provider, Map options) {
    String name = (String) options.apply("book");
    return new GrantSource(context.sparkSession(), (StructType) schema.get(), GrantBook.named(name));
  }
}
