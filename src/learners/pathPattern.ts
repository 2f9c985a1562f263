/** @file Regular expressions of whole paths of variables, as fields of configs have them. */
import { didYouMean } from '../hparams/index.js';
import { check } from './checkFields.js';

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

/** @param owner the instance that has the pattern, whose class opens the message. @throws ConfigError */
export function compilePattern(owner: object, pattern: string): RegExp {
  try {
    return wholePath(pattern);
  } catch (error) {
    check(owner, false, `'${pattern}' is not a regular expression: ${(error as Error).message}`);
    throw error;
  }
}

/**
 * @param owner the instance that has the patterns, whose class opens the message.
 * @param what the variables in words.
 * @throws ConfigError for a pattern that matches the path of none of the variables
 */
export function checkPatterns(
  owner: object,
  patterns: readonly string[],
  variables: readonly { readonly path: string }[],
  what = 'variable of the model',
): void {
  const paths = variables.map(({ path }) => path);
  for (const pattern of patterns) {
    check(
      owner,
      paths.some((path) => wholePath(pattern).test(path)),
      `the pattern '${pattern}' matches no ${what}.${didYouMean(pattern, paths)} ` +
        'It is compared with the whole path; model_params.txt and luthier analyze list the paths.',
    );
  }
}
