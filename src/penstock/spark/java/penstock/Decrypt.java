package penstock;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Base64;
import org.apache.spark.sql.api.java.UDF1;

/** A 0 and the value's bytes as they were before `Encrypt`, or a 1 and the reason why it cannot be decrypted. */
public class Decrypt implements UDF1 {
  private final KeyPlace keys;
  private final String name;
  private final byte[] column;

  public Decrypt(KeyPlace keys, String column) {
    this.keys = keys;
    this.name = column;
    this.column = column.getBytes(StandardCharsets.UTF_8);
  }

  public Object call(Object text) throws Exception {
    return text == null ? null : open((String) text);
  }

  private byte[] open(String text) throws GeneralSecurityException {
    byte[] sealed = bytes(text);
    if (sealed.length < 2 || sealed[0] != AesGcm.VERSION || sealed[1] < 1 || sealed.length < 2 + sealed[1]) {
      return refused("is no encrypted value");
    }
    String id = new String(sealed, 2, (int) sealed[1], StandardCharsets.UTF_8);
    KeyRing.Key key = keys.ring().find(id);
    if (key == null) {
      // Quoted without what could break a line or a log: the id is not authenticated yet.
      return refused("needs key " + id.replaceAll("[^A-Za-z0-9_.-]", "?") + ", which is not in the ring");
    }
    byte[] plain = AesGcm.mine().open(key, column, sealed);
    return plain == null
        ? refused("is not as it was encrypted: changed, cut, or of another column or key")
        : marked((byte) 0, plain);
  }

  /** Empty where the text is not exactly what `Encrypt` writes: base64 has several spellings of the same bytes. */
  private static byte[] bytes(String text) {
    try {
      byte[] found = Base64.getDecoder().decode(text);
      return Base64.getEncoder().encodeToString(found).equals(text) ? found : new byte[0];
    } catch (IllegalArgumentException strange) {
      return new byte[0];
    }
  }

  private byte[] refused(String reason) {
    return marked((byte) 1, ("column " + name + " " + reason).getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] marked(byte mark, byte[] bytes) {
    byte[] whole = new byte[bytes.length + 1];
    whole[0] = mark;
    System.arraycopy(bytes, 0, whole, 1, bytes.length);
    return whole;
  }
}
