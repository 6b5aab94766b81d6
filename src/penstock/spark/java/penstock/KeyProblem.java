package penstock;

/** Why keys cannot be used. The text names a place or a key's id; what was read is never part of it, nor a cause. */
public class KeyProblem extends RuntimeException {
  public KeyProblem(String message) {
    super(message);
  }
}
