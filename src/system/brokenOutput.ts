/** @file EPIPE on stdout or stderr: output that nobody reads any more. */

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
 * Has `then`, in place of the former handler, called at each write that nobody reads.
 *
 * @returns a function that restores the former handler.
 */
export function onOutputGone(then: () => void): () => void {
  watch();
  const former = act;
  act = then;
  return () => {
    act = former;
  };
}
