package penstock;

import java.util.Arrays;
import java.util.HashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Parquet whose reader is made once for all turns of a relation. Spark makes one for each run of a plan, and sends
 * Hadoop's settings to every executor with it: more than a thousand of them, which the driver keeps until it collects.
 */
final class GrantedParquet extends ParquetFileFormat {
  // A plan may read a relation several times, with columns and filters of its own; no plan of ours does so often.
  private static final int MOST = 8;

  // Readers are of this one: executors need nothing of ours to read.
  private final transient ParquetFileFormat spark = new ParquetFileFormat();
  private final transient HashMap readers = new HashMap();

  public synchronized Function1 buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partition, StructType required, Seq filters, Map options,
      Configuration settings) {
    Object asked = Arrays.asList(new Object[] {session, data, partition, required, filters, options});
    Function1 reader = (Function1) readers.get(asked);
    if (reader == null) {
      reader = spark.buildReaderWithPartitionValues(session, data, partition, required, filters, options, settings);
      if (readers.size() == MOST) {
        readers.clear();
      }
      readers.put(asked, reader);
    }
    return reader;
  }
}
