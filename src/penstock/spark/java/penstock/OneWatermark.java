package penstock;

import java.util.TreeMap;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkPropagator;

/** The same for all of a plan: rows are late by that of the batch before, state is let go by the batch's own. */
final class OneWatermark implements WatermarkPropagator {
  private final TreeMap byBatch = new TreeMap();

  public void propagate(long batch, SparkPlan plan, long watermark) {
    byBatch.put(Long.valueOf(batch), Long.valueOf(watermark));
  }

  public long getInputWatermarkForLateEvents(long batch, long operator) {
    return of(batch - 1);
  }

  public long getInputWatermarkForEviction(long batch, long operator) {
    return of(batch);
  }

  private long of(long batch) {
    Long watermark = (Long) byBatch.get(Long.valueOf(batch));
    return watermark == null ? 0 : watermark.longValue();
  }

  public void purge(long batch) {
    byBatch.headMap(Long.valueOf(batch), true).clear();
  }
}
