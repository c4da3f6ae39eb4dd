/**
 * Resolves configured references: folders and files outside the Location that prompts mention and `read` reads as
 * `name:path`. `Permission.ts` decides who may read. Spec: PX-20..PX-22 in specs/context.md.
 */
import * as fs from "node:fs/promises"
import { homedir } from "node:os"
import * as path from "node:path"
import { Context, Effect, Layer, Option } from "effect"
import { namePattern } from "../definition/Fields.ts"
import { projectRoot } from "../trust/ProjectRoot.ts"

/** A configured folder or file outside the Location. */
export interface Reference {
  /** Absolute, below the home folder (`~/`), or relative to the project's root. */
  readonly path: string
  /** A description for the model. */
  readonly description?: string
}

/** References by name; none by default. */
export class References extends Context.Reference<References>()("@daybook/core/References", {
  defaultValue: (): ReadonlyMap<string, Reference> => new Map()
}) {}

/** References as configured. */
export type WrittenReferences = Readonly<Record<string, string | Reference>>

/** The prefix of kept tool outputs. */
const reserved = "tool-output"

/** Provides the host's references. A name that cannot be mentioned is ignored, with a warning. */
export const layer = (written: WrittenReferences = {}): Layer.Layer<never> =>
  Layer.effect(
    References,
    Effect.gen(function* () {
      const references = new Map<string, Reference>()
      for (const [name, value] of Object.entries(written)) {
        if (namePattern.test(name) && name !== reserved) {
          references.set(name, typeof value === "string" ? { path: value } : value)
        } else {
          yield* Effect.logWarning(`reference ${JSON.stringify(name)} is left out: such a name cannot be mentioned`)
        }
      }
      return references
    })
  )

/** A path inside a reference: `name:path`. */
export interface ReferencedPath {
  readonly name: string
  readonly reference: Reference
  /** Empty: the reference itself. */
  readonly rest: string
}

/** The reference that a path begins with; none if no reference has that name. */
export const parseReferenced = (
  references: ReadonlyMap<string, Reference>,
  given: string
): Option.Option<ReferencedPath> => {
  const colon = given.indexOf(":")
  const name = given.slice(0, Math.max(colon, 0))
  return Option.map(Option.fromNullable(references.get(name)), (reference) => ({
    name,
    reference,
    rest: given.slice(colon + 1)
  }))
}

/** The canonical path of a reference, relative to the project of a canonical folder; none if it does not exist. */
export const referenceRoot = (reference: Reference, directory: string): Effect.Effect<Option.Option<string>> =>
  Effect.gen(function* () {
    const written = reference.path.startsWith("~/") ? path.join(homedir(), reference.path.slice(2)) : reference.path
    const full = path.isAbsolute(written) ? written : path.resolve(yield* projectRoot(directory), written)
    return yield* Effect.option(Effect.tryPromise(() => fs.realpath(full)))
  })
