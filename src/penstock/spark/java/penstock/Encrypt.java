package penstock;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.sql.api.java.UDF1;

/** A value's bytes, encrypted with the current key for one column, in base64. */
public class Encrypt implements UDF1 {
  private final KeyPlace keys;
  private final byte[] column;

  public Encrypt(KeyPlace keys, String column) {
    this.keys = keys;
    this.column = column.getBytes(StandardCharsets.UTF_8);
  }

  public Object call(Object value) throws Exception {
    if (value == null) {
      return null;
    }
    byte[] sealed = AesGcm.mine().seal(keys.ring().current(), column, (byte[]) value);
    return Base64.getEncoder().encodeToString(sealed);
  }
}
