/** @file EPIPE on stdout or stderr: output whose reader has closed. */

let act: () => void = () => {};
let watched = false;

function watch(): void {
  if (watched) return;
  watched = true;
  for (const stream of [process.stdout, process.stderr]) {
    // Other errors, such as EIO of a closed terminal, mean lost output, which is no reason to lose work as well.
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'EPIPE') act();
    });
  }
}

/**
 * Replaces the handler of writes to closed outputs by `then`.
 *
 * @returns a function that restores the former handler.
 */
export function onOutputClosed(then: () => void): () => void {
  watch();
  const former = act;
  act = then;
  return () => {
    act = former;
  };
}
