package penstock;

import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.util.sketch.BloomFilter;

/** Whether an id may be among the lines of a text: a Bloom filter, so now and then a stranger is let through. */
public class Bloom implements UDF1, Function {
  private final OncePerJvm ids;
  private final long expected;
  private final double falsePositives;
  private transient volatile BloomFilter filter;

  public Bloom(OncePerJvm ids, long expected, double falsePositives) {
    this.ids = ids;
    this.expected = expected;
    this.falsePositives = falsePositives;
  }

  public Object call(Object argument) throws Exception {
    return argument instanceof String[] ? fill((String[]) argument) : test((String) argument);
  }

  private Object test(String id) throws Exception {
    if (filter == null) {
      filter = (BloomFilter) ids.get(this);
    }
    return id == null ? null : Boolean.valueOf(filter.mightContainString(id));
  }

  private BloomFilter fill(String[] lines) {
    BloomFilter made = BloomFilter.create(expected, falsePositives);
    for (int i = 0; i < lines.length; i++) {
      made.putString(lines[i]);
    }
    return made;
  }
}
