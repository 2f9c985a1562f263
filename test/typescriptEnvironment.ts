/** @file How processes that tests start run TypeScript. */

/** What node imports first so that a process, and all that it starts, may run TypeScript. */
export const typescript = new URL('typescript.js', import.meta.url).href;

/** This environment with `more`, in which node runs TypeScript. */
export function typescriptEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const env = { ...process.env, ...more };
  return { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} --import ${typescript}`.trim() };
}
