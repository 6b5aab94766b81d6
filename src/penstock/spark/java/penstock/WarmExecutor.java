package penstock;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.StructType;

/**
 * Lets an executor do once what every turn does, before it tells the driver that it takes tasks: compile code, read a
 * Parquet file, load the state store's library. Else the first turn that has a task there waits for it.
 */
public class WarmExecutor implements SparkPlugin {
  /** The Parquet file to read, of one column `warm`; none is read where this is not set. */
  public static final String FILE = "spark.penstock.warm.file";
  /** Whether state will lie in RocksDB. */
  public static final String ROCKSDB = "spark.penstock.warm.rocksdb";

  public DriverPlugin driverPlugin() {
    return null;
  }

  public ExecutorPlugin executorPlugin() {
    return new Warming();
  }

  private static class Warming implements ExecutorPlugin {
    public void init(PluginContext context, Map more) {
      try {
        UnsafeProjection$.MODULE$.create(new StructType().add("number", "bigint").add("text", "string"));
        if (context.conf().contains(FILE)) {
          read(context.conf().get(FILE));
        }
        if (context.conf().getBoolean(ROCKSDB, false)) {
          org.rocksdb.RocksDB.loadLibrary();
        }
      } catch (Throwable notWarm) {
        // It is as cold as it would have been; what is wrong will show where it matters.
        return;
      }
    }

    private static void read(String file) throws Exception {
      VectorizedParquetRecordReader reader = new VectorizedParquetRecordReader(false, 16);
      try {
        reader.initialize(file, Arrays.asList(new String[] {"warm"}));
        while (reader.nextBatch()) {
          continue;
        }
      } finally {
        reader.close();
      }
    }
  }
}
