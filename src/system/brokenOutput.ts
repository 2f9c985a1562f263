/** @file EPIPE on stdout or stderr: output that nobody reads any more. */

let act: () => void = () => {};
let watched = false;

function watch(): void {
  if (watched) return;
  watched = true;
  for (const stream of [process.stdout, process.stderr]) {
    // Other errors say that output is lost, as EIO does of a closed terminal, which is no reason to lose work as well.
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'EPIPE') act();
    });
  }
}

/**
 * Has `then` called, in place of what was to be called before, at each write that nobody reads.
 *
 * @returns what brings back the former.
 */
export function onOutputGone(then: () => void): () => void {
  watch();
  const former = act;
  act = then;
  return () => {
    act = former;
  };
}
