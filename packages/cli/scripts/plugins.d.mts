import type { Plugin } from "esbuild"

export declare const plugins: ReadonlyArray<Plugin>
