/** Shows a session's folder as its agent sees it. Pure. Spec: FI-10 in specs/files.md. */

/**
 * The folder as the agent sees it: its path below the root, `/` for the root itself. Without a root, or outside of it,
 * the host path.
 */
export const agentDirectory = (root: string | undefined, directory: string): string => {
  if (root === undefined || root === "/") return directory
  if (directory === root) return "/"
  return directory.startsWith(`${root}/`) ? directory.slice(root.length) : directory
}
