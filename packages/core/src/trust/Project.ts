/** Finds the project of a Location and whether what it brings counts. Spec: TR-1, TR-20. */
import * as path from "node:path"
import { Effect } from "effect"
import { projectRoot } from "./ProjectRoot.ts"
import { isTrusted, type Standing, type Trust } from "./ProjectTrust.ts"

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
