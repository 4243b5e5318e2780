// Waits for elements that Gradio has yet to render.

/**
 * Resolves with the element of a selector as soon as it exists.
 *
 * @param {string} selector
 * @returns {Promise<any>}
 */
export function rendered(selector) {
  const present = document.querySelector(selector);
  if (present) return Promise.resolve(present);
  return new Promise((resolve) => {
    const watch = new MutationObserver(() => {
      const element = document.querySelector(selector);
      if (!element) return;
      watch.disconnect();
      resolve(element);
    });
    watch.observe(document.documentElement, { childList: true, subtree: true });
  });
}
