/** @file Which experiments a pattern names. */

/** Whether a text is a pattern with * or ?. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** What a pattern with * or ? stands for: the whole name, or all of it behind one of its dots. */
function glob(pattern: string): RegExp {
  const source = pattern
    .replace(/[\\^$.+()[\]{}|]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^(?:.*\\.)?${source}$`, 'i');
}

/** Those of `experiments` whose names have `pattern` in them or, where it has * or ?, are what it describes. */
export function matching<T extends { readonly name: string }>(
  pattern: string,
  experiments: readonly T[],
): T[] {
  if (isPattern(pattern)) {
    const expression = glob(pattern);
    return experiments.filter(({ name }) => expression.test(name));
  }
  const part = pattern.toLowerCase();
  return experiments.filter(({ name }) => name.toLowerCase().includes(part));
}
