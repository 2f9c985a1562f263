/** @file Closes what a job holds, however it ends. */

/** Acts, then closes all parts. The error of the act is what is thrown; one of closing only where there is none. */
export async function thenClose<T>(
  parts: readonly { close(): Promise<void> }[],
  act: () => Promise<T>,
): Promise<T> {
  const close = () => Promise.allSettled(parts.map(async (part) => part.close()));
  let result: T;
  try {
    result = await act();
  } catch (error) {
    await close();
    throw error;
  }
  const failed = (await close()).find((closed) => closed.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return result;
}
