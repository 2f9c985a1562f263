/** @file A clock that is set while the process runs, as by a machine that was asleep: `Date` jumps at times drawn from CLOCK_SEED. */
const jumps = Number(process.env.CLOCK_SEED ?? 0);
if (jumps > 0) {
  let state = jumps % 2147483647 || 1;
  const draw = () => (state = (state * 48271) % 2147483647) / 2147483647;
  let offset = 0;
  const now = Date.now.bind(Date);
  const Real = Date;
  // From a week back to a week ahead, for up to two seconds.
  const jump = () => {
    offset = Math.round((draw() - 0.5) * 14 * 86_400_000);
    setTimeout(jump, draw() * 2000).unref();
  };
  globalThis.Date = class extends Real {
    constructor(...given) {
      super(...(given.length === 0 ? [now() + offset] : given));
    }
    static now() {
      return now() + offset;
    }
  };
  jump();
}
