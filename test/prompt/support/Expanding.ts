/** Expands prompts with the whole runtime on real files; tests look at the admitted expansion. */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import type { ExpandedPart, Expansion, PromptInput } from "../../../packages/log/src/domain/Values.ts"
import { open, temporaryFolder } from "../../support/Harness.ts"

/** A one-pixel picture. */
export const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

export const numbered = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("")

/** A project and a folder beside it, with their own runtime. */
export const makeDesk = Effect.fnUntraced(function* (
  options: (folders: { readonly project: string; readonly outside: string }) => Partial<Daybook.Options> = () => ({})
) {
  const base = yield* temporaryFolder
  const [project, outside] = [join(base, "project"), join(base, "outside")]
  for (const folder of [project, outside]) mkdirSync(folder)
  // Makes this folder the project's root, whatever is above it.
  mkdirSync(join(project, ".git"))
  const runtime = yield* open(options({ project, outside }))
  const write = (folder: string) => (name: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
  const session = (agent?: string) =>
    Effect.provide(
      Effect.flatMap(Sessions, (sessions) =>
        sessions.create({ location: { directory: project }, ...(agent === undefined ? {} : { agent }) })
      ),
      runtime
    )
  /** The expansion of an admitted prompt. */
  const expand = (prompt: string | PromptInput, agent?: string): Effect.Effect<Expansion | undefined, unknown> =>
    Effect.gen(function* () {
      const { id } = yield* session(agent)
      const sessions = yield* Sessions
      const asked = typeof prompt === "string" ? { text: prompt } : prompt
      return (yield* sessions.prompt({ sessionID: id, prompt: asked, resume: false })).prompt.expansion
    }).pipe(Effect.provide(runtime))
  const parts = (prompt: string | PromptInput, agent?: string) =>
    Effect.map(expand(prompt, agent), (expansion) => expansion?.parts ?? [])
  return { project, outside, runtime, write: write(project), writeOutside: write(outside), session, expand, parts }
})

/** The text of a part. */
export const textOf = (part: ExpandedPart | undefined): string =>
  part?.content.type === "text" ? part.content.text : `no text: ${JSON.stringify(part)?.slice(0, 200)}`

/** Kind and name of each part. */
export const kinds = (parts: ReadonlyArray<ExpandedPart>) => parts.map(({ kind, name }) => `${kind} ${name}`)
