/** The project of a Location, and whether what it brings counts. Spec: TR-1, TR-20. */
import { Effect } from "effect"
import { projectRoot } from "../context/ProjectRoot.ts"
import { isTrusted, type Standing, type Trust } from "./ProjectTrust.ts"

export interface Project {
  /** Canonical. */
  readonly root: string
  readonly standing: Standing
}

/** The project of a canonical folder. */
export const projectAt = (trust: Trust, directory: string): Effect.Effect<Project> =>
  Effect.flatMap(projectRoot(directory), (root) => Effect.map(trust.of(root), (standing) => ({ root, standing })))

/** Why something of the project does not count, as a clause; undefined where the project is trusted. */
export const notCounting = ({ root, standing }: Project): string | undefined =>
  isTrusted(standing) ? undefined : `the project in ${JSON.stringify(root)} is not trusted: ${standing.why}`
