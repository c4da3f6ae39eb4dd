/**
 * Configured references: folders and files beside the Location that prompts mention and `read` reads as `name:path`.
 * Owns their names and where they are; who may read is in `Permission.ts`. Spec: PX-20..PX-22 in specs/context.md.
 */
import * as fs from "node:fs/promises"
import { homedir } from "node:os"
import * as path from "node:path"
import { Context, Effect, Layer, Option } from "effect"
import { namePattern } from "../config/Fields.ts"
import { projectRoot } from "../context/ProjectRoot.ts"

export interface Reference {
  /** Absolute, below the home folder (`~/`), or relative to the project's root. */
  readonly path: string
  /** What it is, for the model. */
  readonly description?: string
}

/** References by name. A host without any has none. */
export class References extends Context.Reference<References>()("@daybook/core/References", {
  defaultValue: (): ReadonlyMap<string, Reference> => new Map()
}) {}

/** As a host writes them. */
export type WrittenReferences = Readonly<Record<string, string | Reference>>

/** Has a meaning of its own before a colon. */
const reserved = "tool-output"

/** The references of a host. A name that could not be mentioned is left out, with a warning. */
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
  /** Empty for the reference itself. */
  readonly rest: string
}

/** The reference that a path begins with; none when no reference has that name. */
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

/** The canonical path of a reference, as seen from a canonical folder; none when there is nothing. */
export const referenceRoot = (reference: Reference, directory: string): Effect.Effect<Option.Option<string>> =>
  Effect.gen(function* () {
    const written = reference.path.startsWith("~/") ? path.join(homedir(), reference.path.slice(2)) : reference.path
    const full = path.isAbsolute(written) ? written : path.resolve(yield* projectRoot(directory), written)
    return yield* Effect.option(Effect.tryPromise(() => fs.realpath(full)))
  })
