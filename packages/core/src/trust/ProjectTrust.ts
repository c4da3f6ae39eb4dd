/**
 * Decides whether what a project brings counts: its instructions, agents, skills, templates, and saved approvals. The
 * host supplies the decision; `TrustStore.ts` keeps a person's decisions. Spec: specs/trust.md TR-2, TR-30, TR-1,
 * TR-20.
 */
import * as path from "node:path"
import { Context, Effect } from "effect"
import { holding, projectRoot } from "./ProjectRoot.ts"

/** A project's trust. */
export interface Standing {
  /** `unknown`: there is no decision about its current content. It has the effect of `restricted`. */
  readonly state: "trusted" | "restricted" | "unknown"
  /** Why, as a clause about the folder: "it belongs to another user". */
  readonly why: string
  /** Whether it was decided; if false, it is trusted only because it brings nothing. */
  readonly decided: boolean
  /** The approved instruction files, relative to the root, with `/`; undefined: all of them. */
  readonly approved?: ReadonlySet<string>
}

/** Decides whether projects are trusted. */
export interface Trust {
  /** The trust of the project with this canonical root. Never fails: a project that cannot be read is not trusted. */
  readonly of: (root: string) => Effect.Effect<Standing>
}

export const foreign: Standing = { state: "restricted", why: "it belongs to another user", decided: false }

/** For hosts that created their working folders: trusts every project, except folders of other users. */
export const trustAll: Trust = {
  of: (root) =>
    Effect.map(
      Effect.sync(() => holding(root)),
      (held): Standing =>
        held === "foreign"
          ? foreign
          : { state: "trusted", why: "its host trusts every folder of this user", decided: true }
    )
}

/** The host's decision. Services read it when they are built, so a host provides it to all of them. */
export class ProjectTrust extends Context.Reference<ProjectTrust>()("@daybook/core/ProjectTrust", {
  defaultValue: (): Trust => trustAll
}) {}

/** Whether what the project brings counts. */
export const isTrusted = ({ state }: Standing): boolean => state === "trusted"

// Finds the project of a Location and whether what it brings counts.

export interface Project {
  /** Canonical. */
  readonly root: string
  readonly standing: Standing
}

/** The project of a canonical folder. */
export const projectAt = (trust: Trust, directory: string): Effect.Effect<Project> =>
  Effect.flatMap(projectRoot(directory), (root) => Effect.map(trust.of(root), (standing) => ({ root, standing })))

const named = (root: string) => `the project in ${JSON.stringify(root)}`

/** Why nothing that the project brings counts, as a clause; undefined if it is trusted. */
export const notCounting = ({ root, standing }: Project): string | undefined =>
  isTrusted(standing) ? undefined : `${named(root)} is not trusted: ${standing.why}`

/**
 * Why one of its instruction files does not count. In a trusted project, only files that existed when it was trusted
 * count.
 */
export const notApproved = (project: Project, file: string): string | undefined => {
  const { root, standing } = project
  const why = notCounting(project)
  if (why !== undefined || standing.approved === undefined) return why
  return standing.approved.has(path.relative(root, file).replaceAll(path.sep, "/"))
    ? undefined
    : `it is not among the files that were trusted in ${named(root)}`
}
