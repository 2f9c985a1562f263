/** @file Errors of users' code with more words in their messages: the class, the fields and the object stay theirs. */

import { isNativeError } from 'node:util/types';
import { ConfigError } from '../errors.js';

/** What an error says by itself, and what was made of that in which build. */
interface Told {
  readonly own: string;
  readonly text: string;
  readonly build: object;
}

const told = new WeakMap<Error, Told>();

/** Whether `thrown`, which may be anything, is an error. */
export function isError(thrown: unknown): thrown is Error {
  try {
    return isNativeError(thrown) || thrown instanceof Error;
  } catch {
    return false;
  }
}

/** What `thrown`, which may be anything, says. */
export function messageOf(thrown: unknown): string {
  try {
    return String(isError(thrown) ? thrown.message : thrown);
  } catch {
    return 'what was thrown cannot be read';
  }
}

/** The message of `error`, without what another build than `build` added; `isTold` says that this one added to it. */
export function messageIn(error: Error, build: object): { message: string; isTold: boolean } {
  const message = messageOf(error);
  const before = told.get(error);
  if (before === undefined || before.text !== message) return { message, isTold: false };
  return before.build === build ? { message, isTold: true } : { message: before.own, isTold: false };
}

/** `error` with the message `text`; where it is frozen, an error of its class with its fields, which has it as cause. */
export function withMessage(error: Error, text: string, build: object): Error {
  const message = messageOf(error);
  const before = told.get(error);
  const own = before?.text === message ? before.own : message;
  const changed = canChange(error) ? error : copyOf(error);
  const stack = stackWith(changed, message, text);
  Object.defineProperty(changed, 'message', hidden(text));
  if (stack !== undefined) Reflect.defineProperty(changed, 'stack', hidden(stack));
  if (changed instanceof ConfigError) Object.assign(changed, { problem: text });
  told.set(changed, { own, text, build });
  return changed;
}

function hidden(value: string): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false };
}

function canChange(error: Error): boolean {
  if (Object.isFrozen(error) || Object.isSealed(error)) return false;
  return Object.isExtensible(error) || Object.hasOwn(error, 'message');
}

function copyOf(error: Error): Error {
  const copy = new Error('', { cause: error });
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error));
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(error))) {
    const isData = 'value' in descriptor;
    Object.defineProperty(copy, key, {
      ...descriptor,
      configurable: true,
      ...(isData ? { writable: true } : {}),
    });
  }
  return copy;
}

/** The stack, which is put together when it is first asked for: of what the error's own code gives. */
function stackOf(error: Error): string | undefined {
  try {
    return error.stack;
  } catch {
    return undefined;
  }
}

/** The stack of `error` with the new message at its head; undefined where it does not begin with the old one. */
function stackWith(error: Error, message: string, text: string): string | undefined {
  const stack = stackOf(error);
  const end = typeof stack === 'string' ? stack.indexOf('\n    at ') : -1;
  if (stack === undefined || end < 0) return undefined;
  const head = stack.slice(0, end);
  if (!head.endsWith(message)) return undefined;
  const start = message === '' ? `${head}: ` : head.slice(0, head.length - message.length);
  return `${start}${text}${stack.slice(end)}`;
}
