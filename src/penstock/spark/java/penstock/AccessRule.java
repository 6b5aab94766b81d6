package penstock;

import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.HashMap;
import org.apache.spark.sql.api.java.UDF2;

/** Whether a subject allows a use at a moment, given in microseconds. What no policy allows is denied. */
public class AccessRule implements UDF2 {
  private final String path;
  private final long refreshNanos;
  private final String use;
  private final String zoneName;
  private transient PolicyFile file;
  private transient ZoneId zone;

  public AccessRule(String path, long refreshNanos, String consumer, String purpose, String zoneName) {
    this.path = path;
    this.refreshNanos = refreshNanos;
    this.use = PolicyFile.use(consumer, purpose);
    this.zoneName = zoneName;
  }

  public Object call(Object subject, Object micros) {
    if (file == null) {
      zone = ZoneId.of(zoneName);
      file = PolicyFile.at(path);
    }
    HashMap subjects = (HashMap) file.allowed(refreshNanos).get(use);
    int[] intervals = subjects == null || subject == null ? null : (int[]) subjects.get(subject);
    return intervals == null ? Boolean.FALSE : Boolean.valueOf(holds(intervals, (Long) micros));
  }

  private boolean holds(int[] intervals, Long micros) {
    int minute = -1;
    for (int i = 0; i < intervals.length; i += 2) {
      if (intervals[i] == 0 && intervals[i + 1] == PolicyFile.DAY) {
        return true;
      }
      if (micros == null) {
        continue;
      }
      if (minute < 0) {
        ZonedDateTime at = Instant.ofEpochSecond(Math.floorDiv(micros.longValue(), 1000000L)).atZone(zone);
        minute = at.getHour() * 60 + at.getMinute();
      }
      if (minute >= intervals[i] && minute < intervals[i + 1]) {
        return true;
      }
    }
    return false;
  }
}
