/** @file Exit codes of processes that signals ended. */

/** By convention: 128 + the signal's number. */
export const exitCodeOfSignal = { SIGHUP: 129, SIGINT: 130, SIGPIPE: 141, SIGTERM: 143 } as const;

/** SIGHUP also stands for launchers that have ended, SIGPIPE for output that nobody reads any more. */
export type StopSignalName = keyof typeof exitCodeOfSignal;
