package penstock;

import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;

/**
 * AES-256-GCM for one thread. A sealed value is: version, length of the key's id, id (the header), nonce, ciphertext
 * and tag. Header and column are authenticated with it.
 */
final class AesGcm {
  static final byte VERSION = 1;
  static final int NONCE_BYTES = 12;
  static final int TAG_BYTES = 16;
  private static final int NONCES_AT_ONCE = 256;
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final ThreadLocal MINE = new ThreadLocal();

  private final Cipher cipher;
  private final byte[] nonces = new byte[NONCES_AT_ONCE * NONCE_BYTES];
  private int used = nonces.length;

  private AesGcm() throws GeneralSecurityException {
    cipher = Cipher.getInstance("AES/GCM/NoPadding");
  }

  /** This thread's own. */
  static AesGcm mine() throws GeneralSecurityException {
    AesGcm found = (AesGcm) MINE.get();
    if (found == null) {
      found = new AesGcm();
      MINE.set(found);
    }
    return found;
  }

  byte[] seal(KeyRing.Key key, byte[] column, byte[] value) throws GeneralSecurityException {
    int start = key.header.length;
    byte[] sealed = new byte[start + NONCE_BYTES + value.length + TAG_BYTES];
    System.arraycopy(key.header, 0, sealed, 0, start);
    nonce(sealed, start);
    begin(Cipher.ENCRYPT_MODE, key, column, sealed);
    cipher.doFinal(value, 0, value.length, sealed, start + NONCE_BYTES);
    return sealed;
  }

  /** Null for a value that is not as it was sealed with this key for this column. */
  byte[] open(KeyRing.Key key, byte[] column, byte[] sealed) throws GeneralSecurityException {
    int start = key.header.length + NONCE_BYTES;
    if (sealed.length < start + TAG_BYTES) {
      return null;
    }
    begin(Cipher.DECRYPT_MODE, key, column, sealed);
    try {
      return cipher.doFinal(sealed, start, sealed.length - start);
    } catch (AEADBadTagException changed) {
      return null;
    }
  }

  private void begin(int mode, KeyRing.Key key, byte[] column, byte[] sealed) throws GeneralSecurityException {
    cipher.init(mode, key.aes, new GCMParameterSpec(TAG_BYTES * 8, sealed, key.header.length, NONCE_BYTES));
    cipher.updateAAD(key.header);
    cipher.updateAAD(column);
  }

  /** Random numbers are drawn many at a time: a draw has a lock and a system call. */
  private void nonce(byte[] into, int at) {
    if (used == nonces.length) {
      RANDOM.nextBytes(nonces);
      used = 0;
    }
    System.arraycopy(nonces, used, into, at, NONCE_BYTES);
    used += NONCE_BYTES;
  }
}
