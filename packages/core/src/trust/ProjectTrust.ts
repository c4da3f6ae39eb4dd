/**
 * Whether what a project brings counts: its instructions, agents, skills, templates, and what was allowed there. A host
 * decides; the store of a person's decisions is in `TrustStore.ts`. Spec: specs/trust.md TR-2, TR-30.
 */
import { Context, Effect } from "effect"
import { holding } from "./FolderOwner.ts"

/** How a project stands. */
export interface Standing {
  /** `unknown`: nobody decided about it as it is now. It counts as little as `restricted`. */
  readonly state: "trusted" | "restricted" | "unknown"
  /** Why, as a clause about the folder: "it belongs to another user". */
  readonly why: string
  /** Somebody decided for it; otherwise it is trusted only because it brings nothing. */
  readonly decided: boolean
  /** The instruction files that were looked at, relative to the root, with `/`; undefined: whatever there is. */
  readonly approved?: ReadonlySet<string>
}

/** Decides for projects. */
export interface Trust {
  /** How the project with this root stands, by its canonical folder. It never fails: what cannot be read is not trusted. */
  readonly of: (root: string) => Effect.Effect<Standing>
}

export const foreign: Standing = { state: "restricted", why: "it belongs to another user", decided: false }

/** For hosts that made the folders they work in: every project is trusted, but for folders of other users. */
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

/** Who decides. Services take it when they are made, so a host gives it to all of them. */
export class ProjectTrust extends Context.Reference<ProjectTrust>()("@daybook/core/ProjectTrust", {
  defaultValue: (): Trust => trustAll
}) {}

/** Whether what the project brings counts. */
export const isTrusted = ({ state }: Standing): boolean => state === "trusted"
