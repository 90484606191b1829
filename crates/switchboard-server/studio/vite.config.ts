import { defineConfig } from "vite";

// Fixed names, so that a rebuild gives the same files: the service sends them with an ETag.
export default defineConfig({
  base: "/",
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: { studio: "index.html", microphone: "worklet/microphone.ts" },
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
