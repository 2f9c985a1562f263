/** @file Regular expressions of whole paths of variables, as fields of configs have them. */

/** Whether a text is a regular expression. */
export function isPattern(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}

/** The expression that matches the whole of a path. @throws SyntaxError */
export const wholePath = (text: string): RegExp => new RegExp(`^(?:${text})$`);
