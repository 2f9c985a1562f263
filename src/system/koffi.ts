/** @file koffi, which calls C functions: loaded on first use, with one configuration for all callers. */

type Koffi = typeof import('koffi');

/** Kernels keep small arrays on the stack, and koffi's stacks for calls off the main thread are 128 kB. */
const stackBytes = 8 << 20;

let loading: Promise<Koffi> | undefined;

/** @throws the loader's error if koffi has no binary for this machine. */
export function loadKoffi(): Promise<Koffi> {
  loading ??= importKoffi();
  return loading;
}

async function importKoffi(): Promise<Koffi> {
  const koffi = await import('koffi');
  // Refused once a function was called, of another copy of this module perhaps.
  if (koffi.config().async_stack_size !== stackBytes) koffi.config({ async_stack_size: stackBytes });
  return koffi;
}
