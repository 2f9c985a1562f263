/** @file Shortest unambiguous forms of paths. */

/** Shortens each path to the fewest final steps that no other path ends with. */
export function shortPaths(paths: ReadonlySet<string>): Map<string, string> {
  const all = [...paths];
  return new Map(
    all.map((path) => {
      const steps = path.split('.');
      for (let size = 1; size < steps.length; size += 1) {
        const ending = steps.slice(-size).join('.');
        const others = all.filter((other) => other !== path && `.${other}`.endsWith(`.${ending}`));
        if (others.length === 0 && /^[A-Za-z]/.test(ending)) return [path, ending];
      }
      return [path, path];
    }),
  );
}
