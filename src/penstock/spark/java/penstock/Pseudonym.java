package penstock;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import org.apache.spark.sql.api.java.UDF2;

/**
 * HMAC-SHA-256, in hexadecimal, of: length of the purpose (4 bytes), purpose, number of the period (8 bytes; the least
 * long where there are none), value. Null where the value is, or the time that a period or a timed ring needs.
 */
public class Pseudonym implements UDF2 {
  private static final char[] DIGITS = "0123456789abcdef".toCharArray();
  private static final ThreadLocal MINE = new ThreadLocal();

  private static final class Hashing {
    Mac mac;
    KeyRing.Key key;
  }

  private final KeyPlace keys;
  private final byte[] purpose;
  private final long periodMicros;
  private final boolean hasTime;

  /** A period of 0 is none. */
  public Pseudonym(KeyPlace keys, String purpose, long periodMicros, boolean hasTime) {
    this.keys = keys;
    this.purpose = purpose.getBytes(StandardCharsets.UTF_8);
    this.periodMicros = periodMicros;
    this.hasTime = hasTime;
  }

  public Object call(Object value, Object micros) throws Exception {
    KeyRing ring = keys.ring();
    if (ring.isTimed() && !hasTime) {
      throw new KeyProblem("pseudonyms: keys with \"from\" need the time of each row, but there is no such column: "
          + "name it with at=...");
    }
    boolean needsTime = ring.isTimed() || periodMicros > 0;
    if (value == null || needsTime && micros == null) {
      return null;
    }
    long at = needsTime ? ((Number) micros).longValue() : 0;
    long period = periodMicros > 0 ? Math.floorDiv(at, periodMicros) : Long.MIN_VALUE;
    Mac mac = mac(ring.isTimed() ? ring.at(at) : ring.current());
    mac.update(ByteBuffer.allocate(4).putInt(purpose.length).array());
    mac.update(purpose);
    mac.update(ByteBuffer.allocate(8).putLong(period).array());
    return hexadecimal(mac.doFinal((byte[]) value));
  }

  /** This thread's own, which keeps its key from row to row. */
  private static Mac mac(KeyRing.Key key) throws GeneralSecurityException {
    Hashing mine = (Hashing) MINE.get();
    if (mine == null) {
      mine = new Hashing();
      mine.mac = Mac.getInstance("HmacSHA256");
      MINE.set(mine);
    }
    if (mine.key != key) {
      mine.mac.init(key.mac);
      mine.key = key;
    }
    return mine.mac;
  }

  private static String hexadecimal(byte[] bytes) {
    char[] text = new char[bytes.length * 2];
    for (int i = 0; i < bytes.length; i++) {
      text[2 * i] = DIGITS[(bytes[i] >> 4) & 15];
      text[2 * i + 1] = DIGITS[bytes[i] & 15];
    }
    return new String(text);
  }
}
