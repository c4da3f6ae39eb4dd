/** Names the terminal of a process, so that it finds what it did there last. Pure. Spec: CL-261. */

/** Variables that terminals set to a value of their own for each window or pane. */
const variables = [
  "TMUX_PANE",
  "ZELLIJ_PANE_ID",
  "WEZTERM_PANE",
  "KITTY_WINDOW_ID",
  "TERM_SESSION_ID",
  "ITERM_SESSION_ID",
  "WT_SESSION",
  "WINDOWID"
] as const

/** A name for a file: other characters than letters, digits, dots and hyphens become hyphens. */
const fileName = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9.-]+/g, "-")
    .replaceAll(/^[-.]+|-+$/g, "")
    .slice(0, 96)

/** The terminal's name: its device, such as `dev-pts-3`, else a variable that it sets; undefined without a terminal. */
export const terminalID = (device: string | undefined, env: Readonly<Record<string, string | undefined>>) => {
  if (device !== undefined && device.startsWith("/dev/")) return fileName(device)
  for (const variable of variables) {
    const value = fileName(env[variable] ?? "")
    if (value !== "") return `${variable}-${value}`
  }
  return undefined
}
