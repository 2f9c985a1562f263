/** @file Services of the operating system: signals, other processes, locks, C functions. */

export { onOutputClosed } from './brokenOutput.js';
export { Child, ChildError } from './child.js';
export { temporaryFolder } from './cleanup.js';
export { contentsAt, digestOf } from './contents.js';
export { letEventsIn } from './eventLoop.js';
export { settledVersion, versionOf } from './fileVersion.js';
export { enterForeignCode, watchForeignCode } from './foreignCode.js';
export { runGit } from './git.js';
export { InterruptedError, spawnGroup } from './groups.js';
export { loadKoffi } from './koffi.js';
export { isUnderTsx } from './launchers.js';
export { acquireLock, describeHolder, type Lock, LockedError, lockHolder } from './lock.js';
export { OwnProcess } from './ownProcess.js';
export { exitCodeOfSignal, isAlive, type StopSignalName } from './processes.js';
export { recordReads } from './reads.js';
export { StopSignal } from './signals.js';
export { StrayFailures } from './strayFailures.js';
export { ownStyles, printable, styled, warn, writeResult, writeText } from './text/output.js';
export { Turns } from './turns.js';
export { Answerer, inLanes, WorkerPool } from './workerPool.js';
