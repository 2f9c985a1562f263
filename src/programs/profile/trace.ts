/** @file Chrome trace of the last run of each program (Trace Event Format), for Perfetto and chrome://tracing. */
import { type Part, type Profiler, type ProgramProfile, readScope } from '../../compiler/index.js';

/** A trace event: X is a span, M a name. Times are in microseconds. */
interface TraceEvent {
  readonly ph: 'X' | 'M';
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly args?: Readonly<Record<string, string>>;
}

/** Microseconds, rounded to nanoseconds. */
const microseconds = (seconds: number): number => Math.round(seconds * 1e9) / 1e3;

/** The layer with the largest share of a part, for display. */
function nameOf({ shares, kind }: Part): string {
  const most = shares.reduce((a, b) => (b.share > a.share ? b : a), shares[0] ?? { scope: '', share: 0 });
  const { layer, isGradient } = readScope(most.scope);
  return `${layer === '' ? kind : layer}${isGradient ? ' (gradient)' : ''}`;
}

function eventsOf(
  profile: ProgramProfile,
  pid: number,
  start: number,
): { events: TraceEvent[]; end: number } {
  const spans = [...profile.lastRun()];
  const origin = Math.min(...spans.map(({ from }) => from));
  const events: TraceEvent[] = [{ ph: 'M', name: 'process_name', pid, tid: 0, args: { name: profile.name } }];
  for (const thread of new Set(spans.map((span) => span.thread)))
    events.push({ ph: 'M', name: 'thread_name', pid, tid: thread, args: { name: `thread ${thread}` } });
  let end = start;
  for (const { thread: tid, part, from, to } of spans) {
    end = Math.max(end, start + to - origin);
    const [ts, dur] = [microseconds(start + from - origin), microseconds(to - from)];
    events.push(
      part === null
        ? { ph: 'X', name: 'waiting', cat: 'waiting', pid, tid, ts, dur }
        : { ph: 'X', name: nameOf(part), cat: part.kind, pid, tid, ts, dur, args: { what: part.label } },
    );
  }
  return { events, end };
}

/** JSON of the last run of every program with timed threads, in sequence. */
export function traceJson({ programs }: Profiler): string {
  let start = 0;
  const all: TraceEvent[] = [];
  for (const [i, profile] of programs.entries()) {
    if (profile.runs === 0 || profile.threads === 0) continue;
    const { events, end } = eventsOf(profile, i + 1, start);
    all.push(...events);
    start = end;
  }
  const lines = all.map((event) => JSON.stringify(event));
  return `{"displayTimeUnit":"ms","traceEvents":[\n${lines.join(',\n')}\n]}\n`;
}
