/** Finds programs of the system, outside of projects: a project's own programs must not get keys or pictures. */
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"
import { childEnvironment } from "@daybook/core/child/ChildEnvironment"
import { neutralPath } from "./Paths.ts"

/** Where the person's desktop is. */
const desktop = ["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY"]

/** The environment of a program of the person's desktop. */
export const environment = (): Record<string, string> => childEnvironment(process.env, desktop)

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the program; undefined if it is not installed. */
export const find = (name: string): string | undefined =>
  neutralPath(process.env)
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isProgram)
