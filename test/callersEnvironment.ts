/** @file Variables of whoever starts the tests that change what programs write: colours, widths, languages, time zones, git. */

const unset =
  /^(NO_COLOR|FORCE_COLOR|NODE_DISABLE_COLORS|CLICOLOR|CLICOLOR_FORCE|COLORTERM|COLUMNS|LINES|LANGUAGE|LC_.*|GIT_.*|LUTHIER_(BENEATH|CACHE_MB|CFLAGS|DUMP|MAX_CONFIGS|MAX_OPERATIONS|KERNEL))$/;

/** Once before the first test, in the process whose environment those of the tests have. */
export default function callersEnvironment(): void {
  for (const name of Object.keys(process.env)) if (unset.test(name)) delete process.env[name];
  Object.assign(process.env, { TERM: 'xterm-256color', LANG: 'C.UTF-8', TZ: 'UTC' });
}
