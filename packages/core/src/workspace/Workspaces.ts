/**
 * The workspaces that this process has, for the processes of one database that do not all have the same folders. A
 * Location that names a workspace runs only where the workspace is. Spec: CU-30..CU-33 in specs/scale.md.
 */
import { Context } from "effect"
import type { Location } from "@daybook/log/domain/Values"

/** Folders by the names of workspaces. Undefined: one process has all folders, and a workspace is only a name. */
export type Folders = Readonly<Record<string, string>> | undefined

export class Workspaces extends Context.Reference<Workspaces>()("@daybook/core/Workspaces", {
  defaultValue: (): Folders => undefined
}) {}

/** Whether sessions of this Location run in this process. */
export const isHere = (folders: Folders, { workspaceID }: Location): boolean =>
  folders === undefined || workspaceID === undefined || Object.hasOwn(folders, workspaceID)
