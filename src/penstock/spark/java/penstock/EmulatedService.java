package penstock;

import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.api.java.UDF2;

/**
 * Lets the task wait as if a row were worked on: for its units times a time drawn anew, of a given mean and squared
 * coefficient of variation (gamma: 0 is always the mean, 1 exponential). The draw is the next one, or that of a key.
 * Always true.
 */
public class EmulatedService implements UDF2 {
  private static final double SHORTEST_NANOS = 500000.0;
  private static final double MOST_AHEAD_NANOS = 5000000.0;
  // Draws of each seed so far in this JVM: turns and tasks go on in one sequence.
  private static final ConcurrentHashMap DRAWN = new ConcurrentHashMap();

  private final double meanNanos;
  private final double scv;
  private final long seed;
  // What is still to be waited; below 0 where the system woke up late.
  private transient double owedNanos;

  public EmulatedService(double meanSeconds, double scv, long seed) {
    this.meanNanos = 1e9 * meanSeconds;
    this.scv = scv;
    this.seed = seed;
  }

  public Object call(Object units, Object key) throws Exception {
    if (units == null) {
      return Boolean.TRUE;
    }
    owedNanos += meanNanos * ((Number) units).doubleValue() * factor(key);
    if (owedNanos >= SHORTEST_NANOS) {
      long begun = System.nanoTime();
      long nanos = (long) owedNanos;
      Thread.sleep(nanos / 1000000L, (int) (nanos % 1000000L));
      owedNanos = Math.max(owedNanos - (System.nanoTime() - begun), -MOST_AHEAD_NANOS);
    }
    return Boolean.TRUE;
  }

  private double factor(Object key) {
    if (scv == 0.0) {
      return 1.0;
    }
    return drawn(seed, key == null ? next() : ((Number) key).longValue(), scv);
  }

  /** The draw of that number: of mean 1 and the given squared coefficient of variation. */
  public static double drawn(long seed, long number, double scv) {
    SplittableRandom random = new SplittableRandom(seed * 0x9E3779B97F4A7C15L + number);
    return gamma(random, 1.0 / scv) * scv;
  }

  private long next() {
    Long key = Long.valueOf(seed);
    AtomicLong drawn = (AtomicLong) DRAWN.get(key);
    if (drawn == null) {
      DRAWN.putIfAbsent(key, new AtomicLong());
      drawn = (AtomicLong) DRAWN.get(key);
    }
    return drawn.getAndIncrement();
  }

  /** Marsaglia and Tsang's method; a shape below 1 by way of the next higher one. */
  private static double gamma(SplittableRandom random, double shape) {
    if (shape < 1.0) {
      return gamma(random, shape + 1.0) * Math.pow(1.0 - random.nextDouble(), 1.0 / shape);
    }
    double d = shape - 1.0 / 3.0;
    double c = 1.0 / Math.sqrt(9.0 * d);
    while (true) {
      double x = normal(random);
      double v = Math.pow(1.0 + c * x, 3.0);
      if (v > 0.0 && Math.log(1.0 - random.nextDouble()) < 0.5 * x * x + d - d * v + d * Math.log(v)) {
        return d * v;
      }
    }
  }

  private static double normal(SplittableRandom random) {
    double radius = Math.sqrt(-2.0 * Math.log(1.0 - random.nextDouble()));
    return radius * Math.cos(2.0 * Math.PI * random.nextDouble());
  }
}
